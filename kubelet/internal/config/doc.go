// Package config is how a kubelet is told what to be: flags, named as
// upstream names them, and a KubeletConfiguration file (v1beta1). A flag that is
// given wins over the file, the file over the defaults. What the file may say
// upstream and this kubelet does not do is refused by name.
//
// options.go has one line for each thing that can be set: its flag, its place here
// and its place in the file. What is added to it is a flag, is read, and is shown.
//
// The command calls it once. It only reads files; it starts nothing.
package config
