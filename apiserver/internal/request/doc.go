// Package request says what a request asks for and who asks, and carries both
// through the request's context.
//
// The filters write, everything behind them reads. It decides nothing.
package request
