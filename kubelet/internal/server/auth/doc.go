// Package auth tells who makes a request to the kubelet and whether they may.
//
// Package server calls it for every request. It asks the API server for
// reviews and keeps their answers for a short while, a bounded number of them;
// it holds no users and no rules of its own.
package auth
