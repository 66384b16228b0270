"""Write recipes/paper: the paper's 21 methods on each of its three streams, with its hyper-parameters.

python benchmarks/make_paper_recipes.py
"""

from pathlib import Path

from perdure.methods import ALIASES, paper_methods

FOLDER = Path(__file__).parents[1] / "recipes" / "paper"

STREAMS = {
    "symbol": (
        "Symbol-QA: 100 tasks of 100 random key-value pairs; keys and values are our own draw.",
        "{kind: symbol, tasks: 100, items: 100, seed: 42}",
        "exact",
        0.75,
    ),
    "llm": (
        "LLM-QA: 100 tasks of 100 invented facts. These are perdure's own; for facts that an instruct model invents, make a\n"
        "# folder with `perdure tasks facts --help` and name it here as {kind: folder, path: …}.",
        "{kind: facts, tasks: 100, items: 100, seed: 42}",
        "normalised",
        0.5,
    ),
    "real": (
        "Real-QA: 100 tasks of 50 questions from ten public sets, read from the hub; for the paper's filter by the base model\n"
        "# make a folder with `perdure tasks real --help` and name it here as {kind: folder, path: …}.",
        "{kind: real, per_source: 500, items: 50, seed: 42}",
        "normalised",
        0.75,
    ),
}

SECTIONS = {
    "replay": (
        "replay: {{weight: {weight}, samples: 300, sampling_temperature: 1.5, top_p: 0.9, "
        "max_new_tokens: 384, temperature: 2.0}}\n"
    ),
    "sd": "distillation: {{weight: 1.0, temperature: 5.0}}\n",
    "si": "si: {{weight: 1.0, damping: 0.1}}\n",
    "ewc": "ewc: {{weight: 1000.0, decay: 1.0, examples: 1000}}\n",
    "o-lora": "orthogonal: {{weight: 0.5}}\n",
    "osrm": "osrm: {{items: 64}}\n",
}

TEMPLATE = """# The paper's {method} on {about}
# Qwen3-4B-Base, three seeds: meant for a large GPU (not timed by us). Scale it down, or run it on another model, with:
#   perdure run paper/{stream}/{name} --tasks 10 --model smollm2-135m --seed 41
model: Qwen/Qwen3-4B-Base
stream: {kind}
methods: [{method}]
seeds: [41, 42, 43]

training: {{epochs: 10, batch_size: 8, learning_rate: 5e-4, weight_decay: 0.01, warmup: 0.05, clip: 1.0, max_length: 384}}
adapter:
  rank: 32
  alpha: 64
  dropout: 0.05
  targets: [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]
asking: {{format: boxed, matching: {matching}, max_new_tokens: 256}}
"""


def file_name(method: str) -> str:
    """all-merge for the method with every anchor; else the mechanisms joined by hyphens."""
    aliases = {name: alias for alias, name in ALIASES.items()}
    return aliases.get(method, method.replace("+", "-"))


def recipes() -> dict[Path, str]:
    """Every recipe's text by its path."""
    written = {}
    for stream, (about, kind, matching, weight) in STREAMS.items():
        for method in paper_methods(stream):
            name = file_name(method)
            text = TEMPLATE.format(method=method, about=about, stream=stream, name=name, kind=kind, matching=matching)
            text += "".join(section.format(weight=weight) for part, section in SECTIONS.items() if part in method.split("+"))
            written[FOLDER / stream / f"{name}.yaml"] = text
    return written


if __name__ == "__main__":
    for path, text in recipes().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"wrote {len(recipes())} recipes under {FOLDER}")
