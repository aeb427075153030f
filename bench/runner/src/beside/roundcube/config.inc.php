<?php
$config['db_dsnw'] = 'sqlite:////var/lib/roundcube/data/roundcube.db?mode=0646&timeout=300';
$config['imap_host'] = 'localhost:143';
$config['smtp_host'] = 'localhost:25';
$config['smtp_user'] = '';
$config['smtp_pass'] = '';
$config['des_key'] = 'a-key-to-be-measured-by.';
$config['enable_spellcheck'] = false;
$config['session_lifetime'] = 120;
$config['log_driver'] = 'stdout';
