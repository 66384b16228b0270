"""The tokenizer of the tiny models: one token a byte, and one each for the two pieces that frame a question and its answer.

Letters and digits are so one token each, any text can be written, and `Question: z6Y1t9\\nAnswer: EwL5` takes thirteen tokens.
"""

from tokenizers import AddedToken, Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

END, PAD = "<|end|>", "<|pad|>"
FRAME = ("Question: ", "\nAnswer:")


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A fresh byte tokenizer of 260 tokens."""
    alphabet = sorted(ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE(vocab={byte: i for i, byte in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(END, special=True), AddedToken(PAD, special=True)])
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in FRAME])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, model_max_length=1024)
