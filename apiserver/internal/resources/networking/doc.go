// Package networking holds what is particular to the kinds that describe the
// network around pods: ingresses and their classes, network policies, and the
// ranges of services' addresses.
package networking
