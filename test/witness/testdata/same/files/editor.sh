#!/bin/sh
sed -i "s/a: b/a: edited/" "$1"
