// Package serviceaccount says what is particular about service accounts, and
// serves their token subresource.
package serviceaccount
