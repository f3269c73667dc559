"""python -m training.pair_model.train --data DIR --out DIR RUN: one run, on a GPU where there is one.

Needs PyTorch 2, which is no dependency of Vestige. The encoder's weights stay as they are. Trained are a
low-rank delta of every linear layer (LoRA, Hu et al. 2021), the layer norms, the token types and the head.
Names of modules and parameters are the names of the arrays in the file that `fold` writes.

Writes `RUN.npz`, the trained arrays in float16, and `RUN.json`, the result on the development pairs.
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.pair_model.pairs import LABELS
from training.pair_model.runs import Arrays, RunSettings, runs

LAYERS, HEADS, WIDTH, HEAD_WIDTH = 6, 12, 384, 128
MAX_TOKENS = 96
ANSWERS = "asked"  # the part with questions and notes
SCALE = 2.0
"""The factor of the low-rank product, LoRA's alpha divided by its rank; `pair_graph.py` has the same."""
INITIAL_SEED = 0
"""All runs start from the same values: only then can their weights be averaged."""
WARM_UP = 0.06
WEIGHT_DECAY = 0.01
EVALUATION_BATCH = 256

Base = dict[str, Tensor]
Rows = dict[str, Tensor]
"""Pairs as padded word pieces (`ids`), token types (`types`), lengths (`lengths`) and labels (`labels`);
`asked` rows are questions with notes."""

_LINEAR = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "o": "attention.output.dense",
    "i": "intermediate.dense",
    "f": "output.dense",
}
_NORMS = {"n1": "attention.output.LayerNorm", "n2": "output.LayerNorm"}


class AdaptedLinear(nn.Module):
    """A linear layer that stays as it is, plus a trained low-rank product, which starts at zero."""

    def __init__(self, base: Base, name: str, rank: int) -> None:
        super().__init__()
        weight = base[f"{name}.weight"]
        self.register_buffer("weight", weight)
        self.register_buffer("bias", base[f"{name}.bias"])
        outputs, inputs = weight.shape
        self.A = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.B = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias) + F.linear(F.linear(x, self.A), self.B) * SCALE


class LayerNorm(nn.Module):
    """A layer norm that is trained in full."""

    def __init__(self, base: Base, name: str) -> None:
        super().__init__()
        self.g = nn.Parameter(base[f"{name}.weight"].clone())
        self.b = nn.Parameter(base[f"{name}.bias"].clone())

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (WIDTH,), self.g, self.b, 1e-12)


class Layer(nn.Module):
    """One layer of the encoder: attention, then the feed-forward part."""

    def __init__(self, base: Base, prefix: str, settings: RunSettings) -> None:
        super().__init__()
        self.dropout = settings.dropout
        for key, name in _LINEAR.items():
            self.add_module(key, AdaptedLinear(base, prefix + name, settings.rank))
        for key, name in _NORMS.items():
            self.add_module(key, LayerNorm(base, prefix + name))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        attended = F.scaled_dot_product_attention(
            _by_head(self.q(x)),
            _by_head(self.k(x)),
            _by_head(self.v(x)),
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
        )
        x = self.n1(x + self._drop(self.o(attended.transpose(1, 2).reshape(x.shape))))
        return self.n2(x + self._drop(self.f(F.gelu(self.i(x)))))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class Encoder(nn.Module):
    """MiniLM with its delta. Word and position embeddings are not trained."""

    def __init__(self, base: Base, settings: RunSettings) -> None:
        super().__init__()
        self.dropout = settings.dropout
        self.register_buffer("words", base["embeddings.word_embeddings.weight"])
        self.register_buffer("positions", base["embeddings.position_embeddings.weight"])
        self.te = nn.Parameter(base["embeddings.token_type_embeddings.weight"].clone())
        self.ln0 = LayerNorm(base, "embeddings.LayerNorm")
        self.L = nn.ModuleList(Layer(base, f"encoder.layer.{at}.", settings) for at in range(LAYERS))

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        embedded = self.words[ids] + self.positions[: ids.shape[1]] + self.te[types]
        x = F.dropout(self.ln0(embedded), self.dropout, self.training)
        for layer in self.L:
            x = layer(x, mask[:, None, None, :])
        return x


class PairClassifier(nn.Module):
    """The encoder and two heads over [CLS], the mean of each text, their distance and their product: `h` for
    relations, `a` for answers. The logits of both stand side by side."""

    def __init__(self, base: Base, settings: RunSettings) -> None:
        super().__init__()
        self.enc = Encoder(base, settings)
        self.h1 = nn.Linear(5 * WIDTH, HEAD_WIDTH)
        self.h2 = nn.Linear(HEAD_WIDTH, len(LABELS))
        self.a1 = nn.Linear(5 * WIDTH, HEAD_WIDTH)
        self.a2 = nn.Linear(HEAD_WIDTH, 1)

    def forward(self, rows: Rows) -> Tensor:
        longest = int(rows["lengths"].max())
        ids, types = rows["ids"][:, :longest], rows["types"][:, :longest]
        mask = torch.arange(longest, device=ids.device)[None] < rows["lengths"][:, None]
        states = self.enc(ids, types, mask).float()
        first, second = (_mean(states, mask & (types == note)) for note in (0, 1))
        features = torch.cat([states[:, 0], first, second, (first - second).abs(), first * second], dim=1)
        related = self.h2(F.gelu(self.h1(F.dropout(features, 0.1, self.training))))
        return torch.cat([related, self.a2(F.gelu(self.a1(F.dropout(features, 0.1, self.training))))], dim=1)


def _by_head(x: Tensor) -> Tensor:
    return x.view(*x.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2)


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    weights = mask.float()[..., None]
    return (states * weights).sum(1) / weights.sum(1)


def read_base(file: Path) -> Base:
    return {name: torch.from_numpy(tensor.astype(np.float32)) for name, tensor in np.load(file).items()}


def read_rows(archive: Arrays, part: str, device: str) -> Rows:
    """The pairs of a part as [CLS] first [SEP] second [SEP], padded."""
    pad, cls, sep, _ = archive["special"].tolist()
    firsts, seconds = _notes(archive, f"{part}_a"), _notes(archive, f"{part}_b")
    count = len(archive[f"{part}_y"])
    ids = np.full((count, MAX_TOKENS), pad, np.int64)
    types = np.zeros((count, MAX_TOKENS), np.int64)
    lengths = np.zeros(count, np.int64)
    for row, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        tokens = [cls, *first, sep, *second, sep]
        ids[row, : len(tokens)] = tokens
        types[row, len(first) + 2 : len(tokens)] = 1
        lengths[row] = len(tokens)
    labels = archive[f"{part}_y"].astype(np.int64)
    asked = np.full(count, part == ANSWERS)
    arrays = {"ids": ids, "types": types, "lengths": lengths, "labels": labels, "asked": asked}
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def _notes(archive: Arrays, name: str) -> Iterator[list[int]]:
    pieces = archive[name].tolist()
    begin = 0
    for length in archive[f"{name}l"].tolist():
        yield pieces[begin : begin + length]
        begin += length


class Sampler:
    """Draws rows of one part without repetition, and shuffles again when too few are left."""

    def __init__(self, rows: Rows, size: int, generator: torch.Generator) -> None:
        self._rows, self._size, self._generator = rows, size, generator
        self._order: Tensor = torch.empty(0, dtype=torch.int64)
        self._at = 0

    def draw(self) -> Rows:
        if self._at + self._size > len(self._order):
            labels = self._rows["labels"]
            self._order = torch.randperm(len(labels), generator=self._generator).to(labels.device)
            self._at = 0
        chosen = self._order[self._at : self._at + self._size]
        self._at += self._size
        return {name: column[chosen] for name, column in self._rows.items()}


def masked(rows: Rows, share: float, special: list[int]) -> Rows:
    """The rows with word pieces replaced by [MASK], in each row between none and twice the share of them."""
    pad, cls, sep, mask = special
    ids = rows["ids"]
    plain = (ids != pad) & (ids != cls) & (ids != sep)
    chance = torch.rand(ids.shape, device=ids.device)
    limit = share * torch.rand(len(ids), 1, device=ids.device) * 2
    return {**rows, "ids": torch.where(plain & (chance < limit), mask, ids)}


def loss_of(model: nn.Module, rows: Rows, settings: RunSettings) -> Tensor:
    """The error of both heads; with `consistency` also the divergence of two passes (R-Drop, Liang et al.
    2021) of the relations."""
    once = model(rows).float()
    if not settings.consistency:
        return _error(once, rows, settings)
    again = model(rows).float()
    error = (_error(once, rows, settings) + _error(again, rows, settings)) / 2
    p, q = (logits[~rows["asked"], : len(LABELS)].log_softmax(1) for logits in (once, again))
    divergence = F.kl_div(p, q, log_target=True, reduction="batchmean") + F.kl_div(
        q, p, log_target=True, reduction="batchmean"
    )
    return error + settings.consistency * divergence / 2


def _error(logits: Tensor, rows: Rows, settings: RunSettings) -> Tensor:
    """The cross-entropy of each head over its rows, weighted by their shares of the batch."""
    asked, labels, smoothing = rows["asked"], rows["labels"], settings.label_smoothing
    related = F.cross_entropy(logits[~asked, : len(LABELS)], labels[~asked], label_smoothing=smoothing)
    wanted = labels[asked].float() * (1 - smoothing) + smoothing / 2
    answered = F.binary_cross_entropy_with_logits(logits[asked, len(LABELS)], wanted)
    share = asked.float().mean()
    return related * (1 - share) + answered * share


def train(base: Base, archive: Arrays, settings: RunSettings, device: str) -> PairClassifier:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(INITIAL_SEED)
    model = PairClassifier(base, settings).to(device).train()
    torch.manual_seed(settings.seed)
    generator = torch.Generator().manual_seed(settings.seed)
    samplers = [
        Sampler(read_rows(archive, part, device), round(settings.batch * share), generator)
        for part, share in settings.shares.items()
        if share
    ]
    parameters = list(model.parameters())
    optimiser = torch.optim.AdamW(
        parameters, lr=settings.learning_rate, weight_decay=WEIGHT_DECAY, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, settings.steps))
    for step in range(settings.steps):
        drawn = [sampler.draw() for sampler in samplers]
        rows = {name: torch.cat([one[name] for one in drawn]) for name in drawn[0]}
        if settings.token_mask:
            rows = masked(rows, settings.token_mask, archive["special"].tolist())
        with torch.autocast(device, torch.bfloat16):
            loss = loss_of(model, rows, settings)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        schedule.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1} of {settings.steps}, loss {loss.item():.3f}", flush=True)
    return model


def _rate(step: int, steps: int) -> float:
    """The factor of the learning rate: a short rise, then a straight fall to zero."""
    return min(1.0, (step + 1) / max(1.0, WARM_UP * steps)) * max(0.0, 1 - step / steps)


def evaluate(model: PairClassifier, rows: Rows) -> dict[str, object]:
    """Accuracy, mean negative log likelihood, and precision and recall of each relation."""
    model.eval()
    with torch.no_grad():
        logits = torch.cat([
            model({name: column[begin : begin + EVALUATION_BATCH] for name, column in rows.items()})
            for begin in range(0, len(rows["labels"]), EVALUATION_BATCH)
        ])[:, : len(LABELS)].float()  # fmt: skip
    labels, chosen = rows["labels"], logits.argmax(1)
    result: dict[str, object] = {
        "accuracy": (chosen == labels).float().mean().item(),
        "negative_log_likelihood": F.cross_entropy(logits, labels).item(),
    }
    for at, label in enumerate(LABELS):
        hits = ((chosen == at) & (labels == at)).sum().item()
        precision = hits / max(1, (chosen == at).sum().item())
        recall = hits / max(1, (labels == at).sum().item())
        result[label] = {"precision": precision, "recall": recall}
    return result


def trained_arrays(model: PairClassifier) -> Arrays:
    return {name: value.detach().cpu().numpy().astype(np.float16) for name, value in model.named_parameters()}


def main() -> None:
    known = runs()
    parser = argparse.ArgumentParser(prog="python -m training.pair_model.train", description="Train one run.")
    parser.add_argument("--data", type=Path, required=True, help="the folder that `pack` wrote")
    parser.add_argument("--out", type=Path, required=True, help="the folder for RUN.npz and RUN.json")
    parser.add_argument("run", choices=list(known), help="a run of runs.toml")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    archive = dict(np.load(given.data / "data.npz"))
    model = train(read_base(given.data / "base.npz"), archive, known[given.run], device)
    result = evaluate(model, read_rows(archive, "dev", device))
    np.savez(given.out / f"{given.run}.npz", **trained_arrays(model))
    (given.out / f"{given.run}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"{given.run}: accuracy {result['accuracy']:.3f} on the development pairs")


if __name__ == "__main__":
    main()
