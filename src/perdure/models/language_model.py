"""A Hugging Face causal LM taken apart where learning needs it: tokens → decoder → hidden states → head."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from perdure.models.batches import Batch, collate
from perdure.models.loading import LoadedModel
from perdure.models.vocabulary import OutputHead, decoder_of
from perdure.randomness import seeded

REPLAY_TOKEN = "<|replay_token|>"


class LanguageModel:
    """What the learner sees of a model. Adapters are injected into ``model`` in place and so act here at once."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.model: Any = loaded.model  # a PreTrainedModel, whose decoder, head and tokens differ by family
        self.tokenizer = loaded.tokenizer
        self.device: torch.device = loaded.device
        self.dtype: torch.dtype = loaded.dtype
        self.pad_token_id: int = loaded.pad_token_id
        self.eos_token_ids: tuple[int, ...] = loaded.eos_token_ids
        self.replay_token_id: int | None = None
        beginning = self.tokenizer("x")["input_ids"][:1]
        self.start: list[int] = beginning if beginning == [self.tokenizer.bos_token_id] else []  # of every sequence
        self.head = OutputHead.of(self.model, torch.tensor([self.tokenizer("Question: 1")["input_ids"]], device=self.device))

    @property
    def decoder(self) -> nn.Module:
        return decoder_of(self.model)

    def encode(self, text: str) -> list[int]:
        """Token ids of a piece of text, with no special tokens added."""
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of token ids; special tokens (end-of-text, replay) leave no trace in it."""
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def decode_whole(self, tokens: Sequence[int]) -> str:
        """Text of token ids with the special tokens written out."""
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def hidden_at_predictions(self, batch: Batch) -> Tensor:
        """Last hidden states at every position that predicts a target, [n, width]; ``batch`` on the model's device."""
        output = self.decoder(input_ids=batch.input_ids, use_cache=False)
        return output.last_hidden_state[batch.predicts]

    def batch(self, sequences: Sequence[Sequence[int]], index: Sequence[int]) -> Batch:
        """The named sequences as one batch on the model's device."""
        return collate(sequences, index, self.pad_token_id, self.replay_token_id).to(self.device)

    def original_weights(self) -> dict[str, Tensor]:
        """The base model's parameters as they were loaded, by name, read anew: for when they must be put back."""
        return {name: parameter.detach() for name, parameter in self.loaded.reload().model.named_parameters()}

    def add_replay_token(self) -> None:
        """Give the model ``<|replay_token|>``: one embedding row, the mean of the original rows, which never moves.

        Only that row is added (none when the embedding has spare rows, as Qwen's has); tied heads stay tied, and an
        untied head's new row is the mean of its rows too.
        """
        model, tokenizer = self.model, self.tokenizer
        weights = {id(layer.weight): layer.weight for layer in (model.get_input_embeddings(), model.get_output_embeddings())}
        means = [weight.detach().float().mean(dim=0) for weight in weights.values()]
        tokenizer.add_special_tokens({"extra_special_tokens": [REPLAY_TOKEN]}, replace_extra_special_tokens=False)
        self.replay_token_id = int(tokenizer.convert_tokens_to_ids(REPLAY_TOKEN))
        if self.replay_token_id >= len(next(iter(weights.values()))):
            with seeded(0, "replay token"):  # Transformers draws the new row before it is set below
                model.resize_token_embeddings(self.replay_token_id + 1, mean_resizing=False)
        for layer, mean in zip((model.get_input_embeddings(), model.get_output_embeddings()), means, strict=False):
            layer.weight.requires_grad_(False)
            layer.weight[self.replay_token_id] = mean.to(layer.weight.dtype)
        self.head = replace(self.head, linear=model.get_output_embeddings())
