// Package preferences reads a user's preferences for kctl, the kuberc: defaults of
// flags, aliases of commands, and which credential plugins may run (KEP-3104;
// kubectl.config.k8s.io/v1beta1, v1alpha1 is read too).
//
// Package command calls it, before the flags of a command line are parsed. It
// reads and writes that one file, and changes commands only in what the user
// did not specify. It sends nothing and prints nothing.
package preferences
