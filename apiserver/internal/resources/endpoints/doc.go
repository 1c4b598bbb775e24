// Package endpoints says what is particular about the two kinds that tell where
// a service's traffic goes. Both are kept as they come: nobody here fills them
// from pods, and nobody here sends traffic by them.
package endpoints
