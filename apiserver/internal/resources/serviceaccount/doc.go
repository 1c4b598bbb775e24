// Package serviceaccount holds what is particular to service accounts, and
// serves their token subresource.
package serviceaccount
