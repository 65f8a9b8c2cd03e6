"""The durable record: what was accepted, what was decided, what was released.

A transition is committed here before its effect is visible, so that ``kill -9`` at any moment
loses nothing, decides nothing twice and releases nothing twice. One process writes; a second one
is refused. The writer belongs to one thread; readers (:class:`LedgerReader`) have connections
of their own and may live in any process.

SQLite runs in WAL mode. A commit survives the death of the process and waits for no disk; one that
decides a run or rules on an update is flushed right after, on another thread. A machine that goes
down in between takes the newest transactions with it: such a run is judged again, or is unknown.
The ledger notices that when it is opened again and begins a new graph (``graph_id``), so that no
revision that was published ever means another update; consumers build theirs anew.

A file that is deleted or replaced while a node writes it is noticed in the next transaction, which
fails, as do all later ones until the file is back or the node is started again. Reading waits for
no writer.

Growth: the newest 20,000 segments are kept whole with their outcomes. Older runs are reduced to
their names, which are kept for good (some 60 bytes each), so that a run can be decided, and an
update released, only once however late it is reported again; such a report is rejected. Old
rejections of updates are dropped: what was never released may be proposed anew. Of interruptions
of runs that never ended the newest 20,000 are kept. Released updates are all kept, since a
consumer builds the graph from revision 1. A robot with 1,000 runs a day keeps some 100 MB of runs,
and gains about 100 MB a year of names and released updates.
"""

from harness_eval.ledger.reader import LedgerReader
from harness_eval.ledger.tables import (
    HELD,
    ledger_path,
    REJECTED,
    RELEASED,
    RunRow,
    UpdateRecord,
)
from harness_eval.ledger.writer import Ledger

__all__ = [
    'HELD',
    'REJECTED',
    'RELEASED',
    'Ledger',
    'LedgerReader',
    'RunRow',
    'UpdateRecord',
    'ledger_path',
]
