"""Former names of the fields of a record, in compiled code."""

from __future__ import annotations

from typing import Any

from abex.kernels.compiling import before_compiling


def former_field(cls: type[Any], former: str, present: str) -> None:
    """Let compiled code read the field ``present`` of a NamedTuple class under its ``former`` name too."""

    @before_compiling
    def register() -> None:
        from numba import types
        from numba.core.imputils import impl_ret_borrowed
        from numba.core.typing.templates import AttributeTemplate
        from numba.extending import infer_getattr, lower_getattr

        named_tuple = types.NamedTuple  # type: ignore[attr-defined, unused-ignore]

        def place(record: Any) -> int | None:
            """Classes that have a field of that name keep it."""
            name = present if record.instance_class is cls else former
            return record.fields.index(name) if name in record.fields else None

        def resolve(self: Any, record: Any) -> Any:
            where = place(record)
            return None if where is None else record.types[where]

        infer_getattr(
            type("FormerField", (AttributeTemplate,), {"key": named_tuple, f"resolve_{former}": resolve})
        )

        @lower_getattr(named_tuple, former)  # type: ignore[untyped-decorator, unused-ignore]
        def read(context: Any, builder: Any, kind: Any, value: Any) -> Any:
            where = place(kind)
            return impl_ret_borrowed(context, builder, kind.types[where], builder.extract_value(value, where))
