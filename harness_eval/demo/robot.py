"""The gantry, its gripper and the wrist camera, as MJCF text."""

from __future__ import annotations

from harness_eval.demo import layout as at
from harness_eval.demo.mjcf import camera_at, tag, text


def gantry() -> str:
    """The gantry; its joints read where the finger tips are in the world."""
    camera = camera_at('wrist', at.WRIST_CAMERA_AT, at.WRIST_CAMERA_LOOKS_AT, at.WRIST_CAMERA_FOVY)
    ranges = {axis: text(limits) for axis, limits in at.GANTRY_RANGE.items()}
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
            {tag('gripper', (-0.040, -0.0261, 0.1168), 0.45)}
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
