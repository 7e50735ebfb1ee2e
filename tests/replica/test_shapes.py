"""What a replicated class may be, told where it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest
from msgspec import Struct, defstruct

from ordercast.errors import UsageError
from ordercast.replica.replica import Replica, ordered
from ordercast.replica.shapes import Shape


class Price(Struct, frozen=True):
    amount: int
    unit: str = "EUR"


class Odd:
    """Nothing knows how to encode it."""


class Shop(Replica):
    prices: dict[str, Price] = {}  # noqa: RUF012
    open: bool = False

    @ordered
    def price(self, name: str, price: Price, again: bool = True) -> list[str]:
        self.prices[name] = price
        return list(self.prices)


def shape(kind: type[Replica]) -> Shape:
    return kind._shape


def test_fields_and_methods_are_found() -> None:
    assert list(shape(Shop).fields) == ["prices", "open"]
    assert [method.name for method in shape(Shop).methods] == ["price"]
    one, other = Shop(), Shop()
    assert one.prices is not other.prices, "a default is nobody's own"


def test_arguments_become_bytes_and_come_back() -> None:
    (method,) = shape(Shop).methods
    assert method.decode(method.arguments(("tea", Price(3)), {})) == ("tea", Price(3), True)
    assert method.decode(method.arguments(("tea",), {"again": False, "price": Price(4)})) == ("tea", Price(4), False)


@pytest.mark.parametrize(
    ("args", "named", "words"),
    [
        (("tea", 3), {}, "Shop.price: Expected `object`, got `int` - at `price`"),
        ((1, Price(3)), {}, "Shop.price: Expected `str`, got `int` - at `name`"),
        (("tea", Price("x")), {}, "Shop.price: Expected `int`, got `str` - at `price[...]`"),  # type: ignore[arg-type]
        (("tea",), {}, "Shop.price: missing a required argument: 'price'"),
        (("tea", Price(3), True, 1), {}, "Shop.price: too many positional arguments"),
        (("tea", Price(3)), {"colour": 1}, "Shop.price: got an unexpected keyword argument 'colour'"),
        (("tea", Odd()), {}, "Shop.price: Encoding objects of type Odd is unsupported"),
        (("tea", Price(2**70)), {}, "Shop.price"),
    ],
)
def test_bad_arguments_are_one_sentence(args: tuple[Any, ...], named: dict[str, Any], words: str) -> None:
    (method,) = shape(Shop).methods
    with pytest.raises(TypeError) as told:
        method.arguments(args, named)
    assert words.replace("`price[...]`", "`price.amount`") in str(told.value) and "\n" not in str(told.value)


def _async() -> None:
    class Bad(Replica):
        @ordered
        async def go(self) -> None: ...


def _yields() -> None:
    class Bad(Replica):
        @ordered
        def go(self) -> int:  # type: ignore[misc]
            yield 1


def _no_type() -> None:
    class Bad(Replica):
        @ordered
        def go(self, x) -> None: ...  # type: ignore[no-untyped-def]


def _no_result() -> None:
    class Bad(Replica):
        @ordered
        def go(self, x: int):  # type: ignore[no-untyped-def]
            ...


def _any_number() -> None:
    class Bad(Replica):
        @ordered
        def go(self, *x: int) -> None: ...


def _reserved() -> None:
    class Bad(Replica):
        @ordered
        def go(self, durable: bool) -> None: ...


def _odd() -> None:
    class Bad(Replica):
        @ordered
        def go(self, x: list[Odd]) -> None: ...


def _odd_field() -> None:
    class Bad(Replica):
        x: Odd


def _odd_result() -> None:
    class Bad(Replica):
        @ordered
        def go(self) -> Callable[[], int]: ...


def _union() -> None:
    class Bad(Replica):
        x: list[int] | set[int]


def _unknown_name() -> None:
    class Bad(Replica):
        x: Nothing  # type: ignore[name-defined]  # noqa: F821


def _taken() -> None:
    class Bad(Replica):
        now: float  # type: ignore[assignment]


def _half() -> None:
    class Bad(Replica):
        def snapshot(self) -> bytes:
            return b""


def _version() -> None:
    class Bad(Replica):
        version = "1"  # type: ignore[assignment]


def _slots() -> None:
    class Bad(Replica):
        __slots__ = ("x",)
        x: int


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_async, "go: an ordered method is applied without waiting: expected def, and no yield"),
        (_yields, "go: an ordered method is applied without waiting"),
        (_no_type, "go: x has no annotation, which says how it is encoded"),
        (_no_result, "go: the result has no annotation: expected -> and a type, or -> None"),
        (_any_number, "go: x: expected plain parameters: no *, ** or /"),
        (_reserved, "go: durable says how a call is made: expected another name"),
        (_odd, "Bad.go: Odd cannot be encoded: expected a type that msgspec knows"),
        (_odd_field, "Bad.x: Odd cannot be encoded"),
        (_odd_result, "Bad.go: Callable cannot be encoded"),
        (_union, "Bad.x: cannot be encoded: Type unions may not contain more than one array-like"),
        (_unknown_name, "Bad: an annotation cannot be read: name 'Nothing' is not defined"),
        (_taken, "Bad.now: every replica has something of this name: expected another"),
        (_half, "Bad: expected both snapshot and restore, or neither"),
        (_version, "Bad: version 1: expected a whole number"),
        (_slots, "Bad: __slots__: expected a class without them"),
    ],
    ids=lambda case: getattr(case, "__name__", None),
)
def test_what_cannot_be_is_refused_at_the_definition(make: Callable[[], None], words: str) -> None:
    with pytest.raises(UsageError) as told:
        make()
    assert words in str(told.value) and "\n" not in str(told.value)


def same_as_shop(**changes: Any) -> type[Replica]:
    """The class above, written once more."""
    Price = defstruct("Price", [("amount", changes.get("amount", int)), ("unit", str, "EUR")], frozen=True)
    hints = {"name": str, "price": changes.get("price", Price), "again": bool, "return": list[str]}

    def price(self: Any, name: Any, price: Any, again: Any = True) -> Any:
        """Another text, and another way to do it."""

    price.__annotations__ = hints
    fields = {"prices": dict[str, Price], "open": bool} | changes.get("fields", {})
    version = changes.get("version", 1)
    space = {"__annotations__": fields, "price": ordered(price), "version": version} | changes.get("more", {})
    return type("Shop", (Replica,), space)


def test_a_digest_follows_from_methods_annotations_and_version() -> None:
    assert shape(same_as_shop()).digest == shape(Shop).digest, "not from code, text or module"
    others = [
        same_as_shop(version=2),
        same_as_shop(amount=str),
        same_as_shop(price=int),
        same_as_shop(fields={"closed": bool}),
        same_as_shop(more={"merge": lambda self, parts: None}),
    ]
    assert len({shape(kind).digest for kind in (Shop, *others)}) == 6


T = TypeVar("T")


class Box(Replica, Generic[T]):
    content: T | None = None

    @ordered
    def put(self, content: T) -> T | None:
        before, self.content = self.content, content
        return before


def test_types_for_type_variables() -> None:
    whole = Box[int]
    assert whole is Box[int] and whole._shape.title == "Box[int]" and issubclass(whole, Box)
    (method,) = whole._shape.methods
    assert method.decode(method.arguments((3,), {})) == (3,)
    with pytest.raises(TypeError, match="Expected `int`, got `str`"):
        method.arguments(("x",), {})
    assert len({kind._shape.digest for kind in (Box, Box[int], Box[str], Box[list[int]])}) == 4
    assert Box._shape.methods[0].arguments(("x",), {})
    with pytest.raises(UsageError, match="2 types given: expected 1"):
        Box[int, str]  # type: ignore[misc]


def test_an_object_outside_of_a_group() -> None:
    shop = Shop()
    with pytest.raises(UsageError, match=r"Shop.price: not in a group: use join\(objects=...\) or group.replicate"):
        shop.price("tea", Price(3))
    with pytest.raises(UsageError, match=r"Shop.now: it comes with a call"):
        shop.now  # noqa: B018
    with pytest.raises(UsageError, match=r"Shop.colour: not annotated in the class"):
        shop.colour = "red"
    shop.open = True
