#!/usr/bin/perl
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# A worker: mq-consume -j4 files -- ./worker.pl
# The payload is the path of a file, whose lines it counts.
use strict;
use warnings;
use IO::Handle;

open my $verbs, '>&=', 3 or die "descriptor 3: $!\n";
$verbs->autoflush;

sub verdict {
	print $verbs "@_\n";
	exit;
}

my $path = do { local $/; <STDIN> } // '';
chomp $path;
print $verbs "run counting\n";
open my $file, '<', $path or verdict "err $!";	# rejected, with this reason
1 while <$file>;
verdict "err $!" if $file->error;
verdict "resend 60-still empty" if !$.;		# again, in a minute
verdict "done $. lines";
