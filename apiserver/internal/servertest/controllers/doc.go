// Package controllers tests the housekeeping loops, and the admission that
// depends on what they count: quotas, limits and disruption budgets.
package controllers
