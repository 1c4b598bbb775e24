// Package quantity knows which texts of quantities (resource.Quantity) are too dear to
// compute.
//
// Quantities have arbitrary precision and are computed digit by digit: an exponent
// like 1e99999999 keeps a CPU busy for hours, here and wherever the quantity is read.
// Ask it before parsing what clients send. It computes no quantity itself.
package quantity
