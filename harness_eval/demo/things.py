"""What stands on the table and what the faults bring, as MJCF text."""

from __future__ import annotations

import math

from harness_eval.demo import layout as at
from harness_eval.demo.mjcf import tag, text


def surroundings() -> str:
    """The table, the frame of the gantry, the floor and the calibration tag."""
    posts = ''.join(
        f'<geom class="seen" type="box" size="0.018 0.018 0.42" pos="{x} {y} 0.32" '
        'material="metal"/>'
        for x in (-0.46, 0.46)
        for y in (-0.30, 0.33)
    )
    rails = ''.join(
        f'<geom class="seen" type="box" size="0.018 0.34 0.018" pos="{x} 0.015 0.72" '
        'material="metal"/>'
        for x in (-0.46, 0.46)
    )
    calibration = (
        '<body pos="-0.245 -0.125 0">'
        '<geom class="seen" type="box" size="0.036 0.003 0.036" pos="0 0.0035 0.036" '
        'euler="-0.55 0 0" material="dark"/>'
        + tag('calibration', (0.0, -0.0002, 0.0365), 0.55)
        + '<geom class="seen" type="box" size="0.030 0.020 0.004" pos="0 0.012 0.004" '
        'material="dark"/></body>'
    )
    return f"""
    <geom class="touched" type="box" size="0.50 0.36 0.02" pos="0 0.01 -0.02"/>
    <geom class="seen" type="box" size="0.50 0.36 0.02" pos="0 0.01 -0.02" material="table"/>
    <geom class="seen" type="box" size="0.502 0.006 0.022" pos="0 -0.355 -0.022" material="dark"/>
    <geom class="seen" type="plane" size="6 6 0.1" pos="0 0 -0.9" material="floor"/>
    {posts}{rails}{calibration}"""


def cabinet() -> str:
    """A cabinet with one drawer, its handle and its tag."""
    x, y = at.CABINET_AT
    wide, deep, tall = at.CABINET_HALF
    wall = 0.006
    drawer_wide, drawer_tall = wide - 2 * wall - 0.001, tall - 2 * wall - 0.001
    face = -deep - 0.004
    bar = face - at.HANDLE_REACH
    shell = ''.join(
        f'<geom class="solid" type="box" size="{text(size)}" pos="{text(pos)}" '
        'material="cabinet"/>'
        for size, pos in (
            ((wide, deep, wall), (0.0, 0.0, wall)),
            ((wide, deep, wall), (0.0, 0.0, 2 * tall - wall)),
            ((wall, deep, tall), (-wide + wall, 0.0, tall)),
            ((wall, deep, tall), (wide - wall, 0.0, tall)),
            ((wide, wall, tall), (0.0, deep - wall, tall)),
        )
    )
    box = ''.join(
        f'<geom class="solid" type="box" size="{text(size)}" pos="{text(pos)}" '
        'material="drawer" mass="0.08"/>'
        for size, pos in (
            ((drawer_wide, deep - 0.01, 0.002), (0.0, 0.0, tall - drawer_tall + 0.002)),
            ((0.003, deep - 0.01, drawer_tall - 0.012), (-drawer_wide + 0.003, 0.0, tall - 0.010)),
            ((0.003, deep - 0.01, drawer_tall - 0.012), (drawer_wide - 0.003, 0.0, tall - 0.010)),
            ((drawer_wide, 0.003, drawer_tall - 0.012), (0.0, deep - 0.014, tall - 0.010)),
        )
    )
    return f"""
    <body name="cabinet" pos="{x} {y} 0">
      {shell}
      <body name="drawer">
        <joint name="drawer_joint" type="slide" axis="0 -1 0" range="0 {at.DRAWER_TRAVEL}"
          damping="6" frictionloss="1.2"/>
        {box}
        <geom class="solid" type="box" size="{wide - 0.001} 0.005 {tall - 0.002}"
          pos="0 {face} {tall}" material="drawer" mass="0.1"/>
        <geom class="solid" type="box" size="0.006 {at.HANDLE_REACH / 2} 0.006"
          pos="0.045 {face - at.HANDLE_REACH / 2} {at.HANDLE_HEIGHT}" material="brass"
          mass="0.02"/>
        <geom name="handle" class="solid" type="box" size="0.010 0.007 0.026"
          pos="0.045 {bar} {at.HANDLE_HEIGHT}" material="brass" mass="0.05"/>
        {tag('drawer', (-0.030, face - 0.0056, tall))}
      </body>
    </body>"""


def tray() -> str:
    """The tray that things are placed on."""
    x, y = at.TRAY_AT
    half, rim = at.TRAY_HALF, 0.004
    rims = ''.join(
        f'<geom class="solid" type="box" size="{text(size)}" pos="{text(pos)}" material="green"/>'
        for size, pos in (
            ((half, rim, 0.006), (0.0, half - rim, 0.006)),
            ((half, rim, 0.006), (0.0, -half + rim, 0.006)),
            ((rim, half, 0.006), (half - rim, 0.0, 0.006)),
            ((rim, half, 0.006), (-half + rim, 0.0, 0.006)),
        )
    )
    return f"""
    <body name="tray" pos="{x} {y} 0">
      <geom class="solid" type="box" size="{half} {half} {at.TRAY_FLOOR / 2}"
        pos="0 0 {at.TRAY_FLOOR / 2}" material="slate"/>
      {rims}
      <geom class="seen" type="box" size="0.025 0.003 0.022" pos="0 {-half - 0.0125} 0.0165"
        euler="-0.62 0 0" material="dark"/>
      {tag('tray', (0.0, -half - 0.0165, 0.0188), 0.62)}
    </body>"""


def _walls(half: float, hole: float, height: float, material: str) -> str:
    """A block with a square hole through it, as four boxes."""
    thick = (half - hole) / 2
    middle = (half + hole) / 2
    return ''.join(
        f'<geom class="solid" type="box" size="{text(size)}" pos="{text(pos)}" '
        f'material="{material}"/>'
        for size, pos in (
            ((thick, half, height / 2), (middle, 0.0, height / 2)),
            ((thick, half, height / 2), (-middle, 0.0, height / 2)),
            ((hole, thick, height / 2), (0.0, middle, height / 2)),
            ((hole, thick, height / 2), (0.0, -middle, height / 2)),
        )
    )


def hole_block() -> str:
    """The block with the hole for the peg."""
    x, y = at.HOLE_AT
    return f"""
    <body name="block" pos="{x} {y} 0">
      {_walls(at.HOLE_BLOCK_HALF, at.HOLE_HALF, at.HOLE_BLOCK_HEIGHT, 'steel')}
      <geom class="seen" type="box" size="{at.HOLE_HALF} {at.HOLE_HALF} 0.0005" pos="0 0 0.0006"
        material="hole"/>
      <geom class="seen" type="box" size="{at.HOLE_BLOCK_HALF + 0.008}
        {at.HOLE_BLOCK_HALF + 0.008} 0.003" pos="0 0 0.003" material="dark"/>
    </body>"""


def rack() -> str:
    """The rack that the peg stands in."""
    x, y = at.RACK_AT
    return f"""
    <body name="rack" pos="{x} {y} 0">
      {_walls(0.030, at.PEG_SHAFT_HALF + 0.0015, at.RACK_HEIGHT, 'slate')}
    </body>"""


def bottle() -> str:
    """The red bottle, tagged in front and on its lid."""
    x, y = at.BOTTLE_AT
    half, tall = at.BOTTLE_HALF, at.BOTTLE_HEIGHT
    body = (tall - 0.024) / 2
    return f"""
    <body name="bottle" pos="{x} {y} 0">
      <freejoint name="bottle"/>
      <geom name="bottle_body" class="touched" type="box" size="{half} {half} {body}"
        pos="0 0 {body}" mass="{at.BOTTLE_MASS * 0.9}"/>
      <geom name="bottle_lid" class="touched" type="cylinder" size="0.0235 0.012"
        pos="0 0 {tall - 0.012}" mass="{at.BOTTLE_MASS * 0.1}"/>
      <geom class="seen" type="mesh" mesh="bottle" material="red"/>
      <geom class="seen" type="mesh" mesh="bottle_lid" material="white"/>
      {tag('bottle', (0.0, -half - 0.0004, at.OBJECT_TAG_HEIGHT - 0.006))}
      {tag('bottle_top', (0.0, 0.0, tall + 0.0004), math.pi / 2)}
    </body>"""


def tin() -> str:
    """The blue tin, tagged in front and on its lid."""
    x, y = at.TIN_AT
    half, tall = at.TIN_HALF, at.TIN_HEIGHT
    return f"""
    <body name="tin" pos="{x} {y} 0">
      <freejoint name="tin"/>
      <geom name="tin_body" class="touched" type="box" size="{half} {half} {tall / 2}"
        pos="0 0 {tall / 2}" mass="{at.TIN_MASS}"/>
      <geom class="seen" type="mesh" mesh="tin" material="blue"/>
      <geom class="seen" type="mesh" mesh="tin_lid" material="steel"/>
      {tag('tin', (0.0, -half - 0.0012, at.OBJECT_TAG_HEIGHT - 0.004))}
      {tag('tin_top', (0.0, 0.0, tall + 0.0004), math.pi / 2)}
    </body>"""


def peg() -> str:
    """The peg with its head, tagged in front and on top."""
    x, y = at.RACK_AT
    shaft, length = at.PEG_SHAFT_HALF, at.PEG_SHAFT_LENGTH
    head, tall = at.PEG_HEAD_HALF, at.PEG_HEAD_HEIGHT
    return f"""
    <body name="peg" pos="{x} {y} 0">
      <freejoint name="peg"/>
      <geom name="peg_shaft" class="solid" type="box" size="{shaft} {shaft} {length / 2 - 0.002}"
        pos="0 0 {length / 2 + 0.002}" material="steel" mass="{at.PEG_MASS * 0.3}"/>
      <geom name="peg_tip" class="solid" type="box" size="{shaft - 0.002} {shaft - 0.002} 0.002"
        pos="0 0 0.002" material="steel" mass="0.002"/>
      <geom name="peg_head" class="touched" type="box" size="{head} {head} {tall / 2}"
        pos="0 0 {length + tall / 2}" mass="{at.PEG_MASS * 0.7}"/>
      <geom class="seen" type="mesh" mesh="peg_head" material="accent"/>
      {tag('peg', (0.0, -head - 0.0004, length + tall / 2))}
      {tag('peg_top', (0.0, 0.0, length + tall + 0.0004), math.pi / 2)}
    </body>"""


def things_of_faults() -> str:
    """What only the faults bring: a stub for the hole, cardboard for the front camera."""
    chip = at.HOLE_HALF - 0.001
    return f"""
    <body name="chip" pos="{text(at.PARKED)}">
      <geom class="solid" type="box" size="{chip} {chip} {at.CHIP_HEIGHT / 2}"
        pos="0 0 {at.CHIP_HEIGHT / 2}" material="brass"/>
    </body>
    <body name="occluder" pos="{text(at.PARKED)}">
      <geom class="seen" type="box" size="0.11 0.004 0.095" material="cardboard"/>
    </body>"""
