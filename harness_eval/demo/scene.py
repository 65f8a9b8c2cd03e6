"""The cell as a MuJoCo model: a gantry with a gripper above a table, and what lies on it.

What can be touched is built from boxes and cylinders in group 3, which no camera draws; what can
be seen are lofted meshes and tags in group 2, which touch nothing.
"""

from __future__ import annotations

import math

import numpy as np

from harness_eval.demo import layout as at
from harness_eval.demo import shapes, textures

RED = '0.78 0.07 0.06 1'
BLUE = '0.08 0.24 0.62 1'


def assets(seed: int) -> dict[str, bytes]:
    """The textures as PNG bytes by file name; the grain of the materials follows the seed."""
    rng = np.random.default_rng(seed)
    files = {
        'wood.png': textures.png(textures.wood(rng)),
        'metal.png': textures.png(textures.brushed_metal(rng)),
        'cardboard.png': textures.png(textures.cardboard(rng)),
    }
    for number, _ in at.MARKERS.values():
        files[f'marker_{number}.png'] = textures.png(textures.marker(number))
    return files


def model_xml() -> str:
    """The whole model as MJCF text; its textures come from :func:`assets`."""
    return f"""
<mujoco model="demo cell">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{at.PHYSICS_STEP}" integrator="implicitfast" cone="elliptic" impratio="10"
    noslip_iterations="2"/>
  <statistic extent="1" center="0 0 0.1"/>
  <visual>
    <global offwidth="640" offheight="480"/>
    <quality shadowsize="1024" offsamples="4" numslices="24" numstacks="2" numquads="1"/>
    <headlight ambient="0.34 0.34 0.36" diffuse="0.22 0.22 0.22" specular="0 0 0"/>
    <map znear="0.02" zfar="8" shadowclip="0.62"/>
  </visual>
  <default>
    <default class="seen"><geom group="2" contype="0" conaffinity="0" mass="0"/></default>
    <default class="touched"><geom group="3" friction="1.0 0.02 0.001" condim="4"
      rgba="0.5 0.5 0.5 0.4"/></default>
    <default class="solid"><geom group="2" friction="1.0 0.02 0.001" condim="4"/></default>
  </default>
  <asset>{_materials()}{_meshes()}</asset>
  <worldbody>
    <light pos="-0.5 -0.9 1.7" dir="0.28 0.52 -0.9" type="directional" diffuse="0.62 0.60 0.56"
      specular="0.35 0.35 0.33" castshadow="true"/>
    <light pos="0.9 -0.4 1.3" dir="-0.5 0.3 -0.7" type="directional" diffuse="0.16 0.18 0.22"
      specular="0.1 0.1 0.1" castshadow="false"/>
    {_camera('front', at.FRONT_CAMERA_AT, at.FRONT_CAMERA_LOOKS_AT, at.FRONT_CAMERA_FOVY)}
    {_surroundings()}
    {_gantry()}
    {_cabinet()}
    {_tray()}
    {_hole_block()}
    {_rack()}
    {_bottle()}
    {_tin()}
    {_peg()}
    {_things_of_faults()}
  </worldbody>
  <equality>
    <joint joint1="finger_left" joint2="finger_right" polycoef="0 1 0 0 0"/>
  </equality>
  <contact>
    <exclude body1="palm" body2="left_finger"/>
    <exclude body1="palm" body2="right_finger"/>
    <exclude body1="cabinet" body2="drawer"/>
  </contact>
  <actuator>
    <position name="x" joint="gantry_x" kp="9000" dampratio="1" forcerange="-200 200"/>
    <position name="y" joint="gantry_y" kp="9000" dampratio="1" forcerange="-200 200"/>
    <position name="z" joint="gantry_z" kp="9000" dampratio="1" forcerange="-60 60"/>
    <position name="yaw" joint="gantry_yaw" kp="60" dampratio="1" forcerange="-10 10"/>
    <position name="left" joint="finger_left" kp="{at.GRIP_STIFFNESS}" dampratio="1"
      forcerange="-25 25"/>
    <position name="right" joint="finger_right" kp="{at.GRIP_STIFFNESS}" dampratio="1"
      forcerange="-25 25"/>
  </actuator>
</mujoco>"""


def _materials() -> str:
    tags = ''.join(
        f'<texture name="marker_{number}" type="2d" file="marker_{number}.png"/>'
        f'<material name="marker_{number}" texture="marker_{number}" specular="0.05" '
        'shininess="0.1"/>'
        for number, _ in at.MARKERS.values()
    )
    return (
        tags
        + """
    <texture type="skybox" builtin="gradient" rgb1="0.80 0.83 0.86" rgb2="0.46 0.51 0.57"
      width="64" height="384"/>
    <texture name="floor" type="2d" builtin="checker" rgb1="0.40 0.43 0.46" rgb2="0.43 0.46 0.49"
      mark="edge" markrgb="0.34 0.37 0.40" width="256" height="256"/>
    <material name="floor" texture="floor" texuniform="true" texrepeat="2 2" specular="0.1"/>
    <texture name="wood" type="2d" file="wood.png"/>
    <texture name="metal" type="2d" file="metal.png"/>
    <texture name="cardboard" type="2d" file="cardboard.png"/>
    <material name="table" texture="wood" texrepeat="1 1" specular="0.15" shininess="0.3"/>
    <material name="cabinet" texture="wood" texrepeat="1 1" specular="0.2" shininess="0.4"
      rgba="0.72 0.62 0.54 1"/>
    <material name="drawer" texture="wood" texrepeat="1 1" specular="0.2" shininess="0.4"
      rgba="0.95 0.86 0.74 1"/>
    <material name="metal" texture="metal" texuniform="true" texrepeat="6 6" specular="0.6"
      shininess="0.6"/>
    <material name="dark" rgba="0.15 0.16 0.18 1" specular="0.4" shininess="0.5"/>
    <material name="rubber" rgba="0.10 0.10 0.10 1" specular="0.1" shininess="0.1"/>
    <material name="accent" rgba="0.95 0.52 0.08 1" specular="0.4" shininess="0.5"/>
    <material name="brass" rgba="0.78 0.60 0.26 1" specular="0.8" shininess="0.8"/>
    <material name="steel" rgba="0.62 0.64 0.67 1" specular="0.9" shininess="0.8"/>
    <material name="slate" rgba="0.30 0.34 0.39 1" specular="0.3" shininess="0.4"/>
    <material name="green" rgba="0.12 0.42 0.27 1" specular="0.3" shininess="0.4"/>
    <material name="cardboard" texture="cardboard" specular="0.02"/>"""
        + f"""
    <material name="red" rgba="{RED}" specular="0.7" shininess="0.7"/>
    <material name="blue" rgba="{BLUE}" specular="0.7" shininess="0.7"/>
    <material name="white" rgba="0.90 0.90 0.88 1" specular="0.3" shininess="0.4"/>
    <material name="hole" rgba="0.04 0.04 0.05 1" specular="0"/>"""
    )


def _meshes() -> str:
    section = shapes.Section
    half, tall = at.BOTTLE_HALF, at.BOTTLE_HEIGHT
    bottle = shapes.loft(
        'bottle',
        [
            section(0.0, half - 0.003, half - 0.003),
            section(0.003, half, half),
            section(tall - 0.032, half, half),
            section(tall - 0.028, half - 0.0015, half - 0.0015, 7),
            section(tall - 0.020, half - 0.007, half - 0.007, 3),
        ],
    )
    lid = shapes.loft(
        'bottle_lid',
        [
            section(tall - 0.020, 0.0235, 0.0235, 2),
            section(tall - 0.002, 0.0235, 0.0235, 2),
            section(tall, 0.0220, 0.0220, 2),
        ],
    )
    half, tall = at.TIN_HALF, at.TIN_HEIGHT
    tin = shapes.loft(
        'tin',
        [
            section(0.0, half - 0.001, half - 0.001, 5),
            section(0.002, half, half, 6),
            section(tall - 0.012, half, half, 6),
        ],
    )
    tin_lid = shapes.loft(
        'tin_lid',
        [
            section(tall - 0.012, half + 0.0008, half + 0.0008, 6),
            section(tall - 0.002, half + 0.0008, half + 0.0008, 6),
            section(tall, half - 0.001, half - 0.001, 6),
        ],
    )
    half = at.PEG_HEAD_HALF
    low, high = at.PEG_SHAFT_LENGTH, at.PEG_SHAFT_LENGTH + at.PEG_HEAD_HEIGHT
    head = shapes.loft(
        'peg_head',
        [
            section(low, half - 0.002, half - 0.002, 6),
            section(low + 0.003, half, half, 8),
            section(high - 0.003, half, half, 8),
            section(high, half - 0.002, half - 0.002, 6),
        ],
    )
    tags = ''.join(shapes.tag(f'tag_{number}', edge) for number, edge in at.MARKERS.values())
    return bottle + lid + tin + tin_lid + head + tags


def _tag(what: str, pos: tuple[float, float, float], tilt: float = 0.0) -> str:
    """A tag seen from -y; ``tilt`` turns it about x, pi/2 makes it lie face up."""
    number, _ = at.MARKERS[what]
    return (
        f'<geom class="seen" type="mesh" mesh="tag_{number}" material="marker_{number}" '
        f'pos="{_text(pos)}" euler="{-tilt} 0 0"/>'
    )


def _text(values: tuple[float, ...]) -> str:
    return ' '.join(f'{value:.6g}' for value in values)


def _camera(
    name: str, pos: tuple[float, float, float], target: tuple[float, float, float], fovy: float
) -> str:
    forward = np.subtract(target, pos)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    return (
        f'<camera name="{name}" pos="{_text(pos)}" fovy="{fovy}" '
        f'xyaxes="{_text(tuple(right))} {_text(tuple(up))}"/>'
    )


def _surroundings() -> str:
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
        + _tag('calibration', (0.0, -0.0002, 0.0365), 0.55)
        + '<geom class="seen" type="box" size="0.030 0.020 0.004" pos="0 0.012 0.004" '
        'material="dark"/></body>'
    )
    return f"""
    <geom class="touched" type="box" size="0.50 0.36 0.02" pos="0 0.01 -0.02"/>
    <geom class="seen" type="box" size="0.50 0.36 0.02" pos="0 0.01 -0.02" material="table"/>
    <geom class="seen" type="box" size="0.502 0.006 0.022" pos="0 -0.355 -0.022" material="dark"/>
    <geom class="seen" type="plane" size="6 6 0.1" pos="0 0 -0.9" material="floor"/>
    {posts}{rails}{calibration}"""


def _gantry() -> str:
    camera = _camera('wrist', at.WRIST_CAMERA_AT, at.WRIST_CAMERA_LOOKS_AT, at.WRIST_CAMERA_FOVY)
    ranges = {axis: _text(limits) for axis, limits in at.GANTRY_RANGE.items()}
    return f"""
    <body name="bridge" gravcomp="1">
      <joint name="gantry_y" type="slide" axis="0 1 0" range="{ranges['y']}"/>
      <geom class="seen" type="box" size="0.46 0.022 0.026" pos="0 0.045 0.72" material="metal"
        mass="3"/>
      <body name="carriage" gravcomp="1">
        <joint name="gantry_x" type="slide" axis="1 0 0" range="{ranges['x']}"/>
        <geom class="seen" type="box" size="0.045 0.03 0.045" pos="0 0.02 0.72" material="dark"
          mass="1.5"/>
        <body name="column" gravcomp="1">
          <joint name="gantry_z" type="slide" axis="0 0 1" range="{ranges['z']}"/>
          <geom class="seen" type="box" size="0.019 0.019 0.24" pos="0 0 0.42" material="metal"
            mass="1.0"/>
          <geom class="seen" type="cylinder" size="0.030 0.014" pos="0 0 0.172"
            material="dark" mass="0.2"/>
          <body name="palm" gravcomp="1">
            <joint name="gantry_yaw" type="hinge" axis="0 0 1" range="-1.6 1.6"/>
            <geom class="seen" type="cylinder" size="0.026 0.014" pos="0 0 0.146"
              material="accent" mass="0.1"/>
            <geom class="solid" type="box" size="0.058 0.020 0.018" pos="0 0 0.114"
              material="white" mass="0.4"/>
            <geom class="seen" type="box" size="0.0585 0.0165 0.004" pos="0 0 0.096"
              material="dark"/>
            <geom class="seen" type="box" size="0.0155 0.0015 0.0155" pos="-0.040 -0.0245 0.1160"
              euler="-0.45 0 0" material="dark"/>
            {_tag('gripper', (-0.040, -0.0261, 0.1168), 0.45)}
            <geom class="seen" type="box" size="0.006 0.055 0.004" pos="0 -0.075 0.184"
              material="metal"/>
            <geom class="seen" type="box" size="0.014 0.010 0.012" pos="0 -0.134 0.176"
              euler="0.75 0 0" material="dark"/>
            {camera}
            {_finger('left', -1)}
            {_finger('right', 1)}
          </body>
        </body>
      </body>
    </body>"""


def _finger(side: str, sign: int) -> str:
    """One finger; its joint is 0 when closed and grows outwards."""
    half = at.FINGER_LENGTH / 2
    return f"""
            <body name="{side}_finger" gravcomp="1">
              <joint name="finger_{side}" type="slide" axis="{sign} 0 0"
                range="0 {at.FINGER_TRAVEL}" damping="5" armature="0.02"/>
              <geom name="{side}_pad" class="solid" type="box" size="0.003 0.011 0.024"
                pos="{sign * 0.003} 0 0.024" material="rubber" mass="0.02"/>
              <geom class="solid" type="box" size="0.004 0.010 {half + 0.008}"
                pos="{sign * 0.0101} 0 {half + 0.008}" material="steel" mass="0.05"/>
            </body>"""


def _cabinet() -> str:
    x, y = at.CABINET_AT
    wide, deep, tall = at.CABINET_HALF
    wall = 0.006
    drawer_wide, drawer_tall = wide - 2 * wall - 0.001, tall - 2 * wall - 0.001
    face = -deep - 0.004
    bar = face - at.HANDLE_REACH
    shell = ''.join(
        f'<geom class="solid" type="box" size="{_text(size)}" pos="{_text(pos)}" '
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
        f'<geom class="solid" type="box" size="{_text(size)}" pos="{_text(pos)}" '
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
        {_tag('drawer', (-0.030, face - 0.0056, tall))}
      </body>
    </body>"""


def _tray() -> str:
    x, y = at.TRAY_AT
    half, rim = at.TRAY_HALF, 0.004
    rims = ''.join(
        f'<geom class="solid" type="box" size="{_text(size)}" pos="{_text(pos)}" '
        'material="green"/>'
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
      {_tag('tray', (0.0, -half - 0.0165, 0.0188), 0.62)}
    </body>"""


def _walls(half: float, hole: float, height: float, material: str, name: str = '') -> str:
    """A block with a square hole through it, as four boxes."""
    thick = (half - hole) / 2
    middle = (half + hole) / 2
    return ''.join(
        f'<geom class="solid" type="box" size="{_text(size)}" pos="{_text(pos)}" '
        f'material="{material}"/>'
        for size, pos in (
            ((thick, half, height / 2), (middle, 0.0, height / 2)),
            ((thick, half, height / 2), (-middle, 0.0, height / 2)),
            ((hole, thick, height / 2), (0.0, middle, height / 2)),
            ((hole, thick, height / 2), (0.0, -middle, height / 2)),
        )
    )


def _hole_block() -> str:
    x, y = at.HOLE_AT
    return f"""
    <body name="block" pos="{x} {y} 0">
      {_walls(at.HOLE_BLOCK_HALF, at.HOLE_HALF, at.HOLE_BLOCK_HEIGHT, 'steel')}
      <geom class="seen" type="box" size="{at.HOLE_HALF} {at.HOLE_HALF} 0.0005" pos="0 0 0.0006"
        material="hole"/>
      <geom class="seen" type="box" size="{at.HOLE_BLOCK_HALF + 0.008}
        {at.HOLE_BLOCK_HALF + 0.008} 0.003" pos="0 0 0.003" material="dark"/>
    </body>"""


def _rack() -> str:
    x, y = at.RACK_AT
    return f"""
    <body name="rack" pos="{x} {y} 0">
      {_walls(0.030, at.PEG_SHAFT_HALF + 0.0015, at.RACK_HEIGHT, 'slate')}
    </body>"""


def _bottle() -> str:
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
      {_tag('bottle', (0.0, -half - 0.0004, at.OBJECT_TAG_HEIGHT - 0.006))}
      {_tag('bottle_top', (0.0, 0.0, tall + 0.0004), math.pi / 2)}
    </body>"""


def _tin() -> str:
    x, y = at.TIN_AT
    half, tall = at.TIN_HALF, at.TIN_HEIGHT
    return f"""
    <body name="tin" pos="{x} {y} 0">
      <freejoint name="tin"/>
      <geom name="tin_body" class="touched" type="box" size="{half} {half} {tall / 2}"
        pos="0 0 {tall / 2}" mass="{at.TIN_MASS}"/>
      <geom class="seen" type="mesh" mesh="tin" material="blue"/>
      <geom class="seen" type="mesh" mesh="tin_lid" material="steel"/>
      {_tag('tin', (0.0, -half - 0.0012, at.OBJECT_TAG_HEIGHT - 0.004))}
      {_tag('tin_top', (0.0, 0.0, tall + 0.0004), math.pi / 2)}
    </body>"""


def _peg() -> str:
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
      {_tag('peg', (0.0, -head - 0.0004, length + tall / 2))}
      {_tag('peg_top', (0.0, 0.0, length + tall + 0.0004), math.pi / 2)}
    </body>"""


def _things_of_faults() -> str:
    chip = at.HOLE_HALF - 0.001
    return f"""
    <body name="chip" pos="{_text(at.PARKED)}">
      <geom class="solid" type="box" size="{chip} {chip} {at.CHIP_HEIGHT / 2}"
        pos="0 0 {at.CHIP_HEIGHT / 2}" material="brass"/>
    </body>
    <body name="occluder" pos="{_text(at.PARKED)}">
      <geom class="seen" type="box" size="0.11 0.004 0.095" material="cardboard"/>
    </body>"""
