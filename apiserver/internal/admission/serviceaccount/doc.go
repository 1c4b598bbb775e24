// Package serviceaccount gives every pod a service account, mounts the token
// by which it speaks to the API, and hands on the account's pull secrets.
package serviceaccount
