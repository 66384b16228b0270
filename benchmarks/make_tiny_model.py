"""Make the tiny model that perdure ships: half a million parameters that memorise symbol pairs through LoRA.

    python benchmarks/make_tiny_model.py [FOLDER]        about five minutes on one core

A Llama of three layers learns, with all its weights, 500 fixed Symbol-QA pairs until it knows them. That gives it the
machinery of looking a key up, which LoRA alone can't build in a model that only knows the format. Half of the texts begin with
a random token, so that a foreign token in front (the replay token) does no harm.
"""

import sys
from pathlib import Path

import torch
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from perdure.models.byte_tokenizer import byte_tokenizer
from perdure.tasks import symbol_stream
from perdure.tasks.text import text_format

STEPS, BATCH, RATE, WARM_UP, PAIRS, SEED = 1500, 64, 2e-3, 50, 500, 20_260


def main(folder: Path) -> None:
    """Train and save; prints the loss and the share of pairs known as it goes."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    tokenizer, plain = byte_tokenizer(), text_format("plain")
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    (task,) = symbol_stream(tasks=1, items=PAIRS, seed=SEED)
    texts = torch.tensor(
        [
            tokenizer(plain.prompt(item.question))["input_ids"]
            + tokenizer(plain.completion(item.answers[0]))["input_ids"]
            + [tokenizer.eos_token_id]
            for item in task.items
        ]
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / WARM_UP, (STEPS - step) / (STEPS - WARM_UP))
    )
    for step in range(1, STEPS + 1):
        batch = texts[torch.randint(PAIRS, (BATCH,))]
        first = torch.randint(len(tokenizer), (BATCH // 2, 1))
        plain_half, led_half = batch[: BATCH // 2], torch.cat([first, batch[BATCH // 2 :]], dim=1)
        loss = (_nll(model, plain_half) + _nll(model, led_half)) / 2
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}, known {_known(model, texts):.1%}", flush=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    print(f"wrote {folder}")


def _nll(model: LlamaForCausalLM, batch: torch.Tensor) -> torch.Tensor:
    """Mean NLL of every token but the first."""
    logits = model(input_ids=batch).logits[:, :-1]
    return functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


@torch.no_grad()
def _known(model: LlamaForCausalLM, texts: torch.Tensor) -> float:
    """Share of pairs whose five answer tokens and end are all the likeliest."""
    logits = model(input_ids=texts).logits[:, -7:-1]
    return (logits.argmax(-1) == texts[:, -6:]).all(dim=1).float().mean().item()


if __name__ == "__main__":
    default = Path(__file__).parents[1] / "src" / "perdure" / "models" / "tiny"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
