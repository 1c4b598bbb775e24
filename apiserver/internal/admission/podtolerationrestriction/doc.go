// Package podtolerationrestriction gives pods the tolerations of their
// namespace, and restricts them to those it lists. It is off by default.
package podtolerationrestriction
