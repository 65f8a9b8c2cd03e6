# Source this in bash to work by hand in what `make` has set up: `source setup/env.sh`, or
# `DISTRO=kilted source setup/env.sh`.

_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
_home=$_root/.envs/${DISTRO:-${ROS_DISTRO:-jazzy}}

if [ ! -e "$_home/stamps/package" ]; then
  echo "expected $_home to be set up; run 'make build' first" >&2
  unset _root _home
  return 1
fi

if [ "$(cat "$_home/mode")" = wheels ]; then
  # Never mix two distributions; and the guard of the wheels must not stop them from finding their
  # libraries.
  unset AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH PYTHONPATH LD_LIBRARY_PATH
  unset ROS_DISTRO ROS_VERSION ROS_PYTHON_VERSION _ROS_WHEELS_BOOTSTRAP_COMPLETE
  export AMENT_PREFIX_PATH=$_home/venv
fi
export VIRTUAL_ENV=$_home/venv
export PATH=$_home/venv/bin:$PATH
. "$_home/install/local_setup.bash"

# One colour picture is larger than the shared memory that Fast DDS takes by default; see the file.
# Fast DDS 3 warns of the name that Fast DDS 2 reads: each gets its own.
_profile=$_root/config/fastdds.xml
for _variable in FASTRTPS_DEFAULT_PROFILES_FILE FASTDDS_DEFAULT_PROFILES_FILE; do
  if [ "${!_variable}" = "$_profile" ]; then unset "$_variable"; fi
done
case ${_home##*/} in
  humble | iron | jazzy) _variable=FASTRTPS_DEFAULT_PROFILES_FILE ;;
  *) _variable=FASTDDS_DEFAULT_PROFILES_FILE ;;
esac
export "$_variable=${!_variable:-$_profile}"
# Render without a screen.
export MUJOCO_GL=${MUJOCO_GL:-egl}
unset _root _home _profile _variable
