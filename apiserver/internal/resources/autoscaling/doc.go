// Package autoscaling says what is particular about horizontal pod
// autoscalers. They are stored as version 2 and shown as version 1 too, where
// what that has no fields for stands in annotations.
package autoscaling
