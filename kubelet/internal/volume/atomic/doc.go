// Package atomic writes a set of files into a directory in one step, so that
// readers see either all of the old files or all of the new ones.
//
// The layout is the one that containers know from upstream:
//
//	DIR/..2026_11_21_09_30_00.123456789/   the files of one writing
//	DIR/..data -> ..2026_11_21_09_30_00.123456789
//	DIR/KEY -> ..data/KEY                  for each first part of a file's path
//
// A new set goes into a new dated directory, and renaming a symlink over
// ..data is the one moment at which it takes effect.
//
// The kinds of volume with content from the API call it, one call at a time for
// one directory. It never decides what the files are, and never waits.
package atomic
