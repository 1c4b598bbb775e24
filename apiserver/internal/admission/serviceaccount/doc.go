// Package serviceaccount gives every pod a service account, mounts its token
// for the API, and adds the account's pull secrets.
package serviceaccount
