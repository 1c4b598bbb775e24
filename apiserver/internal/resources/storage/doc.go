// Package storage says what is particular about the kinds by which volumes are
// made and attached: classes, the drivers of the Container Storage Interface
// and what nodes and drivers have of them, and attachments.
package storage
