// Package podtopologyspread is the plugin PodTopologySpread: pods of one kind
// are spread over the values of a label of the nodes, so that no value has many
// more of them than another (API docs, "Pod Topology Spread Constraints"). The
// profile builds it, and gives it constraints for pods that have none.
package podtopologyspread
