// Package controllers tests the loops that keep house, and the admission that
// goes by what they count: quotas, limits and disruption budgets.
package controllers
