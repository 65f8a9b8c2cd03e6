"""The message types that can be decoded: the standard ones, installed ones and those of a bag.

A type is looked for where it is most particular: first among the definitions that were handed in
(a bag brings its own), then among the standard types of the ROS distribution, then in the ament
index, where every installed interface package leaves its ``.msg`` and ``.idl`` files. Our own
messages in bags are known without that too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
import os
from pathlib import Path
import re
import sys
import threading
from typing import Any, TYPE_CHECKING

from harness_eval.contract import DecodeError
from harness_eval.decode.own_types import OWN_DEFINITIONS

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

MAX_DEFINITION_BYTES = 1_000_000
"""Largest definition file that is read."""

DEFAULT_DISTRO = 'jazzy'

_TYPE = re.compile(r'([A-Za-z][A-Za-z0-9_]*)/(?:(msg|srv|action)/)?([A-Za-z][A-Za-z0-9_]*)')
_HEADER_TYPE = 'std_msgs/msg/Header'
_MAX_TYPES = 2000
_IDL_MARK = '=' * 80 + '\nIDL: '


@dataclass(frozen=True)
class TypeDefinition:
    """What a bag says of a message type.

    Attributes:
        form: ``ros2msg`` or ``ros2idl``.
        text: The definition, with those of all types that it is made of behind it.
        digest: Hash of it as in REP 2016 (``RIHS01_…``).
    """

    form: str
    text: str
    digest: str


class MessageTypes:
    """Message definitions by type name, learned when they are first needed.

    Looking a type up may happen on several threads at once; learning one holds a lock.

    Args:
        prefixes: Install prefixes to search, as in ``AMENT_PREFIX_PATH``, best first.
        distro: ROS distribution whose standard types are known from the start.
    """

    def __init__(self, prefixes: Sequence[Path] = (), distro: str = DEFAULT_DISTRO) -> None:
        """Know nothing yet; everything is learned on first use."""
        self._prefixes = tuple(prefixes)
        self._distro = distro
        self._handed_in: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._store: Typestore | None = None
        self._standard: Typestore | None = None
        self._ready: set[str] = set()
        self._alignments: dict[str, int | None] = {}
        self._definitions: dict[str, TypeDefinition] = {}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> MessageTypes:
        """Search where a sourced ROS 2 says (``AMENT_PREFIX_PATH``), then beside Python.

        The wheels of ROS 2 leave their definitions beside Python and name no prefix.
        """
        named = environment.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
        return cls(
            tuple(Path(prefix) for prefix in (*named, sys.prefix) if prefix),
            environment.get('ROS_DISTRO') or DEFAULT_DISTRO,
        )

    def register(self, type_name: str, definition: str, form: str = 'ros2msg') -> None:
        """Add a definition, as a bag carries it with its dependencies behind it.

        Args:
            type_name: Name of the type that the text defines.
            definition: The text, in the format of ``.msg`` or ``.idl`` files; definitions of
                other types may follow behind a line of equals signs.
            form: ``ros2msg`` or ``ros2idl``.

        Raises:
            DecodeError: ``bad_definition``, or ``conflicting_definition`` if another definition
                of the type is already in use.
        """
        name = normalized(type_name)
        parsed = _parse(name, definition, form)
        with self._lock:
            for other, body in parsed.items():
                known = self._known(other) or self._handed_in.get(other)
                if known is not None and known[1] != body[1]:
                    raise DecodeError(
                        'conflicting_definition',
                        f'{other} is defined in two ways; use a new decoder for each bag',
                    )
            self._handed_in.update(parsed)

    def store(self, type_name: str) -> Typestore:
        """Give the type store, with the type and everything that it is made of in it.

        Raises:
            DecodeError: ``unknown_type``, ``bad_definition``.
        """
        store = self._store
        # The store itself shows a type before its class is there, so it cannot be asked.
        if store is not None and type_name in self._ready:
            return store
        with self._lock:
            store = self._learn(type_name)
            self._ready.add(type_name)
            return store

    def header_alignment(self, type_name: str) -> int | None:
        """Tell whether messages of a type begin with a header.

        Returns:
            To how many bytes the field behind the header is aligned; None without a header.

        Raises:
            DecodeError: ``unknown_type``, ``bad_definition``.
        """
        if type_name not in self._alignments:
            self._alignments[type_name] = self._alignment_behind_header(type_name)
        return self._alignments[type_name]

    def definition(self, type_name: str) -> TypeDefinition:
        """Give what a bag says of a type.

        Raises:
            DecodeError: ``unknown_type``, ``bad_definition``.
        """
        if type_name not in self._definitions:
            store = self.store(type_name)
            text, _ = store.generate_msgdef(type_name, ros_version=2)
            form = 'ros2idl' if text.startswith(_IDL_MARK) else 'ros2msg'
            self._definitions[type_name] = TypeDefinition(form, text, store.hash_rihs01(type_name))
        return self._definitions[type_name]

    def _alignment_behind_header(self, type_name: str) -> int | None:
        from rosbags.interfaces import Nodetype
        from rosbags.serde.utils import align

        store = self.store(type_name)
        members = store.fielddefs[type_name][1]
        if not members or tuple(members[0][1]) != (Nodetype.NAME, _HEADER_TYPE):
            return None
        return align(members[1][1], store) if len(members) > 1 else 1

    def _known(self, type_name: str) -> Any:
        return self._store.fielddefs.get(type_name) if self._store is not None else None

    def _learn(self, type_name: str) -> Typestore:
        from rosbags.typesys import get_typestore, Stores, TypesysError

        if self._store is None:
            self._store = get_typestore(Stores.EMPTY)
        store = self._store
        fresh: dict[str, Any] = {}
        wanted = [(type_name, '')]
        while wanted:
            name, user = wanted.pop()
            if name in store.fielddefs or name in fresh:
                continue
            found = self._definition(name, user)
            fresh.update({key: body for key, body in found.items() if key not in store.fielddefs})
            wanted += [(part, key) for key, body in found.items() for part in _parts(body)]
            if len(fresh) > _MAX_TYPES:
                raise DecodeError(
                    'bad_definition', f'{type_name} needs more than {_MAX_TYPES} types'
                )
        _refuse_loops(fresh, type_name)
        try:
            store.register(fresh)
        except (TypesysError, SyntaxError, ValueError, AssertionError, KeyError) as error:
            raise DecodeError(
                'bad_definition', f'the definition of {type_name} cannot be used: {error}'
            ) from None
        return store

    def _definition(self, name: str, user: str) -> Mapping[str, Any]:
        if name in self._handed_in:
            return {name: self._handed_in[name]}
        standard = self._standard_types()
        if name in standard.fielddefs:
            return {name: standard.fielddefs[name]}
        installed = self._installed(name)
        if installed is not None:
            return installed
        own = OWN_DEFINITIONS.get(name)
        if own is not None:
            return _parse(name, own, 'ros2msg')
        needed = f', which {user} needs,' if user else ''
        raise DecodeError(
            'unknown_type',
            f'the message type {name}{needed} is not known: expected its .msg file in one of the '
            f'{len(self._prefixes)} prefixes of AMENT_PREFIX_PATH; source the workspace that '
            'defines it before the start',
        )

    def _standard_types(self) -> Typestore:
        if self._standard is None:
            from rosbags.typesys import get_typestore, Stores

            known = {store.value: store for store in Stores}
            self._standard = get_typestore(known.get(f'ros2_{self._distro}', Stores.LATEST))
        return self._standard

    def _installed(self, name: str) -> Mapping[str, Any] | None:
        parts = _TYPE.fullmatch(name)
        if parts is None:
            return None
        package, kind, message = parts.groups()
        for prefix in self._prefixes:
            base = prefix / 'share' / package / (kind or 'msg') / message
            for suffix, form in (('.msg', 'ros2msg'), ('.idl', 'ros2idl')):
                path = base.with_name(message + suffix)
                try:
                    if not path.is_file() or path.stat().st_size > MAX_DEFINITION_BYTES:
                        continue
                    text = path.read_text(encoding='utf-8')
                except (OSError, UnicodeDecodeError):
                    continue
                return _parse(name, text, form)
        return None


def normalized(type_name: str) -> str:
    """Write ``sensor_msgs/Image`` as ``sensor_msgs/msg/Image``.

    Raises:
        DecodeError: ``unknown_type``: not the name of a type.
    """
    parts = _TYPE.fullmatch(type_name)
    if parts is None:
        raise DecodeError(
            'unknown_type',
            f'{type_name[:100]!r} is not the name of a message type; expected the form '
            'sensor_msgs/msg/Image',
        )
    package, kind, message = parts.groups()
    return f'{package}/{kind or "msg"}/{message}'


def _parse(name: str, text: str, form: str) -> dict[str, Any]:
    from rosbags.typesys import get_types_from_idl, get_types_from_msg, TypesysError

    if form not in ('ros2msg', 'ros2idl'):
        raise DecodeError(
            'bad_definition',
            f'the definition of {name} is of the form {form!r}, expected ros2msg or ros2idl',
        )
    try:
        if form == 'ros2msg':
            parsed = dict(get_types_from_msg(text, name))
        else:
            parsed = dict(get_types_from_idl(text))
    except (TypesysError, ValueError, AssertionError, RecursionError, KeyError) as error:
        raise DecodeError(
            'bad_definition', f'the definition of {name} cannot be read: {error}'
        ) from None
    if name not in parsed:
        raise DecodeError('bad_definition', f'the definition of {name} does not define it')
    return parsed


def _parts(body: Any) -> Iterable[str]:
    """Name the message types that a definition is made of."""
    for _, description in body[1]:
        # A name is (kind, name); a sequence or an array is (kind, (element, length)).
        while not isinstance(description[1], str):
            inner = description[1][0]
            if not isinstance(inner, tuple):
                break
            description = inner
        else:
            yield description[1]


def _refuse_loops(types: Mapping[str, Any], type_name: str) -> None:
    """Refuse a type that holds itself: its code could not be made."""
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise DecodeError('bad_definition', f'{type_name}: {name} holds itself')
        if name in done or name not in types:
            return
        for part in _parts(types[name]):
            visit(part, (*above, name))
        done.add(name)

    visit(type_name, ())
