// Package autoscaling holds what is particular to horizontal pod autoscalers.
// They are stored as version 2 and also served as version 1, in which
// annotations hold what has no field.
package autoscaling
