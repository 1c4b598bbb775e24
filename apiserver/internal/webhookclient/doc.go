// Package webhookclient asks an external service for a review: it posts an object and
// reads the service's answer, over TLS, with few retries and in bounded time.
//
// The webhook modes of authn and authz use a Service, which a file names;
// admission and the conversion of custom resources use Clients, which users'
// objects name; a Client shows a webhook what there is of Credentials for it. It
// takes no decision, follows no redirects, and caches answers only if told to.
package webhookclient
