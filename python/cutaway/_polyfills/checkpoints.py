"""``torch.utils.checkpoint``: what a policy says to save makes no difference to what is computed."""

from __future__ import annotations

import dis
from typing import Any

import torch.utils.checkpoint


class SelectiveContext:
    """In the place of the modes that see to what is saved and what is computed again."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> Any:
    return SelectiveContext(policy_fn_or_list), SelectiveContext(policy_fn_or_list)


def only_answers(code: Any) -> bool:
    """Really called, while capturing: a function that looks at its arguments and gives an answer. Eager asks it for each operator."""
    return not any(
        i.opname.startswith(("STORE_", "DELETE_", "CALL", "IMPORT_", "YIELD", "SEND", "RAISE", "MAKE_FUNCTION"))
        and i.opname != "STORE_FAST"
        for i in dis.get_instructions(code)
    )


REPLACEMENTS: dict[Any, Any] = {
    torch.utils.checkpoint.create_selective_checkpoint_contexts: create_selective_checkpoint_contexts
}
