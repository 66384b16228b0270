"""What holds old knowledge: in the data, in the function, in the weights."""

from perdure.anchors.anchor import Anchor
from perdure.anchors.distillation import DistillationAnchor
from perdure.anchors.importance import OnlineEWCAnchor, SynapticIntelligenceAnchor
from perdure.anchors.replay import ReplayAnchor
from perdure.methods import Method
from perdure.settings import LearnerSettings


def build_anchors(method: Method, settings: LearnerSettings, *, keep_end_of_text: bool) -> dict[str, Anchor]:
    """The anchors that a method names, by name. A new anchor is one file beside this one and one line here."""
    available = {
        "replay": (method.replay, lambda: ReplayAnchor(settings.replay, keep_end_of_text=keep_end_of_text)),
        "sd": (method.distillation, lambda: DistillationAnchor(settings.distillation)),
        "si": (
            method.weight_anchor == "si",
            lambda: SynapticIntelligenceAnchor(settings.si, current_data_only=method.allocation == "orthogonal"),
        ),
        "ewc": (method.weight_anchor == "ewc", lambda: OnlineEWCAnchor(settings.ewc)),
    }
    return {name: build() for name, (wanted, build) in available.items() if wanted}
