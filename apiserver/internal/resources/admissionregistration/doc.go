// Package admissionregistration says what is particular about the objects by
// which users take part in admission: webhook configurations, admission
// policies and their bindings. Expressions are compiled here before they are
// stored, so that whoever writes one is told what is wrong with it.
package admissionregistration
