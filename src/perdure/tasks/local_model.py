"""A local Hugging Face model as streams need one: what it writes after a prompt, and how it replies in a chat."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from perdure.errors import InputError
from perdure.models.decoding import NucleusSampler, continue_sequences
from perdure.models.language_model import LanguageModel
from perdure.models.loading import load_model
from perdure.randomness import derive
from perdure.tasks.conversation import Message, Reply
from perdure.tasks.real import Keep
from perdure.tasks.task import Item
from perdure.tasks.text import TextFormat
from perdure.tasks.text import text_format as text_format_named
from perdure.tasks.unknown import Verdicts, unknown_items


class LocalModel:
    """A model and how it is sampled.

    Parameters
    ----------
    name: id, path or embedded model, as :func:`perdure.models.loading.load_model` takes it.
    temperature, top_p: of every draw.
    batch_size: texts written at a time.
    """

    def __init__(
        self, name: str, *, temperature: float, top_p: float = 1.0, batch_size: int = 32, device: str | None = None
    ) -> None:
        loaded = load_model(name, device=device)
        self.name, self.fingerprint = loaded.name, loaded.fingerprint
        self._model = LanguageModel(loaded)
        self._temperature, self._top_p, self._batch_size = temperature, top_p, batch_size

    def sampler(self, text_format: TextFormat, samples: int, max_new_tokens: int, seed: int) -> "PromptSampler":
        """Draws so many texts after each prompt (:class:`perdure.tasks.unknown.Sample`), each until its answer is complete."""
        return PromptSampler(self, text_format, samples, max_new_tokens, seed)

    def keep_unknown(
        self, verdicts: Path, *, samples: int, max_new_tokens: int, seed: int, note: Callable[[str], None]
    ) -> tuple[Keep, dict[str, Any]]:
        """A filter for :func:`perdure.tasks.real.real_stream` that keeps what this model answers wrong every time, asked in
        the plain format; and how it asks, for the manifest.

        Parameters
        ----------
        verdicts: a file that keeps what is known so far (:class:`perdure.tasks.unknown.Verdicts`).
        note: told where the asking is, after each batch.
        """
        asked = {"model": self.name, "fingerprint": self.fingerprint, "samples": samples, "temperature": self._temperature}
        asked |= {"max_new_tokens": max_new_tokens, "seed": seed}
        known, text_format = Verdicts(verdicts, asked), text_format_named("plain")
        sample = self.sampler(text_format, samples, max_new_tokens, seed)

        def keep(source: str, candidates: Iterator[Item]) -> Iterator[Item]:
            def advance(_items: int) -> None:
                note(f"{source}: {known.unknown} of {len(known)} questions asked so far are not known to {self.name}")

            return unknown_items(candidates, sample, text_format, known, batch_size=self._batch_size, advance=advance)

        return keep, asked

    def reply(self, messages: Sequence[Message], *, max_new_tokens: int, seed: int) -> Reply:
        """What the model says next in a chat (:class:`perdure.tasks.conversation.ChatModel`).

        Raises
        ------
        InputError: the model has no chat template.
        """
        tokenizer = self._model.tokenizer
        if tokenizer.chat_template is None:
            raise InputError(f"{self.name} has no chat template, so it can't be asked to invent; name an instruct model.")
        text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        prompt = self._model.encode(str(text))
        (tokens,) = self.write([prompt], max_new_tokens, seed)
        return Reply(self._model.decode(tokens), len(prompt), len(tokens))

    def write(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int, seed: int, text_format: TextFormat | None = None
    ) -> list[list[int]]:
        """Token ids drawn after each prompt's, up to the format's end of an answer or end-of-text."""
        model = self._model
        banned = {model.pad_token_id} - set(model.eos_token_ids)
        sampler = NucleusSampler(
            len(prompts),
            max_new_tokens,
            temperature=self._temperature,
            top_p=self._top_p,
            banned=[*banned, *range(len(model.tokenizer), model.head.vocabulary)],
            seed=seed,
            task=0,
        )
        return continue_sequences(
            model,
            prompts,
            pick=sampler,
            finished=lambda _row, tokens: text_format is not None and text_format.finished(model.decode(tokens)),
            max_new_tokens=max_new_tokens,
            batch_size=self._batch_size,
        )

    def encode_prompt(self, prompt: str) -> list[int]:
        """A prompt's token ids, with the token that begins every text where the model has one."""
        return [*self._model.start, *self._model.encode(prompt)]

    def decode(self, tokens: Sequence[int]) -> str:
        """Text without special tokens."""
        return self._model.decode(tokens)


class PromptSampler:
    """Several texts after each prompt. What is drawn depends on the prompts asked together and on nothing else."""

    def __init__(self, model: LocalModel, text_format: TextFormat, samples: int, max_new_tokens: int, seed: int) -> None:
        self._model, self._format = model, text_format
        self._samples, self._max_new_tokens, self._seed = samples, max_new_tokens, seed

    def __call__(self, prompts: Sequence[str], /) -> list[list[str]]:
        """As :class:`perdure.tasks.unknown.Sample` says."""
        asked = hashlib.sha256("\0".join(prompts).encode()).hexdigest()
        tokens = [encoded for prompt in prompts for encoded in [self._model.encode_prompt(prompt)] * self._samples]
        drawn = self._model.write(tokens, self._max_new_tokens, derive(self._seed, asked), self._format)
        texts = [self._model.decode(row) for row in drawn]
        return [texts[start : start + self._samples] for start in range(0, len(texts), self._samples)]
