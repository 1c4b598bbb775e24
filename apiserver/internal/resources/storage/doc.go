// Package storage holds what is particular to the kinds for provisioning and
// attaching volumes: classes, CSI drivers, what nodes and drivers report of
// them, and attachments.
package storage
