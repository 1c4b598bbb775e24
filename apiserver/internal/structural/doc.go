// Package structural works with the schemas of custom resources: it makes sure
// that a schema is structural, fills defaults in, drops what the schema does
// not know, and validates values by it in upstream's words.
//
// customresources compiles one Schema per version of a definition; the strategy
// of definitions asks whether a schema may be one. Values are JSON as maps,
// slices, strings, int64, float64 and bool. It knows nothing of rules in CEL.
package structural
