#!/bin/bash
# A sweep as a Slurm array of 100 parts: sbatch slurm.sh SCENARIO OUT
#
# For parts that failed, submit those alone: sbatch --array=7,12 slurm.sh SCENARIO OUT
# At the end: anabranch sim merge OUT/parts/* --out OUT/all
#
#SBATCH --job-name=anabranch
#SBATCH --array=1-100
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
#SBATCH --time=04:00:00
#SBATCH --output=anabranch-%A_%a.log
set -euo pipefail
scenario=$1
out=$2
# Not $SLURM_ARRAY_TASK_COUNT, which is smaller when only some parts are submitted.
parts=${PARTS:-100}

anabranch sim run "$scenario" --shard "$SLURM_ARRAY_TASK_ID/$parts" \
    --jobs "${SLURM_CPUS_PER_TASK:-1}" --out "$out/parts/$SLURM_ARRAY_TASK_ID"
