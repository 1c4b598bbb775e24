// Package noderesources holds the plugins that count what nodes have and pods
// ask for: NodeResourcesFit (does it fit, and by its strategy how much is left
// or used up) and NodeResourcesBalancedAllocation (are a node's resources used
// evenly). The profile builds them; the sums are kept by framework.NodeInfo.
package noderesources
