// Package networking says what is particular about the kinds that describe the
// network around pods: ingresses and their classes, network policies, and the
// ranges that services have their addresses from.
package networking
