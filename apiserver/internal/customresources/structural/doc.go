// Package structural works with the schemas of custom resources: it checks that
// a schema is structural, fills in defaults, prunes unknown fields, and
// validates values in upstream's words.
//
// customresources compiles one Schema per version of a definition; the strategy
// of definitions checks schemas with it. Values are JSON as maps, slices,
// strings, int64, float64 and bool. It does not evaluate CEL rules.
package structural
