// Package docs_test runs the commands of README.md, apiserver/README.md and docs/*.md, page by page
// and in order, against a cluster: what stands there to be copied works.
//
// Shell commands are fenced blocks of the languages sh, bash, shell and
// console, and indented blocks. Before each stands a comment that readers of
// the page don't see:
//
//	<!-- run -->                            the test runs it
//	<!-- run by test/FOLDER TEST -->        another test does: it takes a machine of its own, or several
//	<!-- not run: why -->                   none does, and why
//
// A block without one fails the test.
package docs_test
