// Package admissionregistration holds what is particular to the objects by
// which users take part in admission: webhook configurations, admission
// policies and their bindings. Expressions are compiled before they are stored,
// so that their authors learn what is wrong with them.
package admissionregistration
