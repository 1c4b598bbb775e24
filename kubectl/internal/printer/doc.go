// Package printer writes API objects in every form that `-o` knows, with one
// printer in each file. It reads objects and writes text; it never asks a
// server, reads a clock of its own or decides what is printed.
//
// The verbs in package command call it.
package printer
