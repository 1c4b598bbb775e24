// Package admissioncontrol puts together, from the flags and the file that they
// name, the chain of admission plugins, and follows the stored objects that they
// decide by at every turn: the rules of namespaces, priority classes, and what
// users have registered.
//
// internal/server makes it once and runs it; what each plugin does is said in
// admission and the rooms below it.
package admissioncontrol
