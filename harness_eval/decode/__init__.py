"""From CDR bytes to pictures, readings, texts and times. No ROS, no clocks, no threads.

:class:`Decoder` is the way in. Whatever the bytes are, the only exception that leaves this package
is :class:`harness_eval.contract.DecodeError`; a picture or a reading that cannot be trusted is
never made up.
"""

from harness_eval.decode.decoder import Decoder
from harness_eval.decode.facts import HeaderFacts, ImageFacts
from harness_eval.decode.typestore import TypeDefinition
from harness_eval.field_path import FieldPath

__all__ = ['Decoder', 'FieldPath', 'HeaderFacts', 'ImageFacts', 'TypeDefinition']
