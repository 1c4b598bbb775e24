// Package endpoints holds what is particular to the two kinds that say where a
// service's traffic goes. Both are only stored: nothing here fills them from
// pods, or routes traffic by them.
package endpoints
