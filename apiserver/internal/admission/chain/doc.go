// Package chain builds the chain of admission plugins from the flags
// and the file that they name, and follows the stored objects on which they
// constantly depend: limit ranges and quotas, priority classes, and what users
// have registered.
//
// internal/server makes it once and runs it; package admission and the rooms beside
// this one say what each plugin does.
package chain
