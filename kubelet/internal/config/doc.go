// Package config reads a kubelet's configuration: flags, with upstream's names,
// and a KubeletConfiguration file (v1beta1). A given flag wins over the file,
// and the file over the defaults. What upstream's file may contain and this
// kubelet does not do is refused by name.
//
// options.go has one line for each setting: its flag, its place here and its place
// in the file. A setting that is added there becomes a flag, is read, and is
// shown. Groups of settings have files of their own, with their defaults and validation.
//
// The command calls it once. It only reads files; it starts nothing.
package config
